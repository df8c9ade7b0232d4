// Candidates made of client-go's leaderelection, for elections that Go and Rust share.
//
//	client-go FLAGS                 one candidate, until SIGTERM; one line of JSON for every transition
//	client-go bench MEASURE FLAGS   figures of client-go, as one line of JSON (bench.go)
//	client-go --version             which client-go this is
//
// Times are nanoseconds of CLOCK_BOOTTIME, as in the lines of the other candidates.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/leaderelection"
)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Println("client-go", version())
	case len(args) > 1 && args[0] == "bench":
		bench(args[1], args[2:])
	default:
		compete(args)
	}
}

// compete stands in one election, and again after every loss, until SIGTERM or SIGINT.
func compete(args []string) {
	flags := flag.NewFlagSet("client-go", flag.ExitOnError)
	store := storeFlags(flags)
	timing := timingFlags(flags)
	name := flags.String("name", "", "the Lease")
	id := flags.String("id", "", "the candidate")
	flags.Parse(args)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	callbacks := leaderelection.LeaderCallbacks{
		OnStartedLeading: func(work context.Context) {
			say(map[string]any{"event": "started_leading"})
			// The work goes on until its context ends, which is not when the lease does.
			<-work.Done()
			say(map[string]any{"event": "work_ended"})
		},
		OnStoppedLeading: func() { say(map[string]any{"event": "stopped_leading"}) },
		OnNewLeader:      func(leader string) { say(map[string]any{"event": "new_leader", "leader": leader}) },
	}
	clients := store.connect()
	for ctx.Err() == nil {
		timing.elector(clients, store.namespace, *name, *id, callbacks).Run(ctx)
	}
	say(map[string]any{"event": "ended"})
}

// say prints one line, with the time at which it is called.
func say(line map[string]any) {
	line["boot_ns"] = bootNow()
	text, err := json.Marshal(line)
	check(err)
	// One write a line: lines of several goroutines never mix.
	os.Stdout.Write(append(text, '\n'))
}

func bootNow() int64 {
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	return now.Nano()
}

func since(start int64) time.Duration { return time.Duration(bootNow() - start) }

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "k8s.io/client-go" {
			return module.Version
		}
	}
	return "of unknown version"
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}
