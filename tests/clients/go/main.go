// Work that says on stdout when it begins, goes on and ends: event lines, on the boot-time clock.
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

func say(event string, leadership *bellwether.Leadership, at int64) {
	fmt.Printf("{\"event\":%q,\"epoch\":%d,\"boot_ns\":%d,\"incarnation\":\"go-%d\",\"deadline_boot_ns\":%d}\n",
		event, leadership.Epoch, at, os.Getpid(), leadership.Deadline())
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
	time.Sleep(stopsIn)
	say("released", leadership, bellwether.BootNanos())
	return ctx.Err()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	campaign, err := bellwether.New(os.Args[1])
	for err == nil && ctx.Err() == nil {
		err = campaign.Lead(ctx, work)
	}
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
