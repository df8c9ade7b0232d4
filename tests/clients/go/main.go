// Work that says on stdout when it begins, goes on, begins to stop and ends: event lines, on the boot-time clock.
//
// The environment may have WITNESS_TOKEN, and WITNESS_STOPS=told: then the work ends only after a SIGHUP.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	bellwether "github.com/bellwether-rs/bellwether/clients/go"
)

// How long the work takes to stop.
const stopsIn = 50 * time.Millisecond

var told = make(chan os.Signal, 1)

func say(event string, leadership *bellwether.Leadership, at int64) {
	holds := "no"
	if leadership.Holds() {
		holds = "yes"
	}
	fmt.Printf("{\"event\":%q,\"election\":\"job\",\"epoch\":%d,\"boot_ns\":%d,\"incarnation\":\"go-%d\",\"deadline_boot_ns\":%d,\"holds\":%q}\n",
		event, leadership.Epoch, at, os.Getpid(), leadership.Deadline(), holds)
}

func work(ctx context.Context, leadership *bellwether.Leadership) error {
	say("acquired", leadership, bellwether.BootNanos())
	for ctx.Err() == nil {
		// Before it asks: what it does then is covered by the answer.
		now := bellwether.BootNanos()
		if !leadership.Holds() {
			break
		}
		say("beat", leadership, now)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	say("stopping", leadership, bellwether.BootNanos())
	if os.Getenv("WITNESS_STOPS") == "told" {
		<-told
	} else {
		time.Sleep(stopsIn)
	}
	say("released", leadership, bellwether.BootNanos())
	return ctx.Err()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Notify(told, syscall.SIGHUP)
	campaign, err := bellwether.New(os.Args[1], bellwether.WithToken(os.Getenv("WITNESS_TOKEN")))
	for err == nil && ctx.Err() == nil {
		err = campaign.Lead(ctx, work)
	}
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
