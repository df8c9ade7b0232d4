package main

import (
	"context"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"
)

// The time for a candidate to be in the queue, and to watch for the end of the one before it.
const waits = 100 * time.Millisecond

// handover measures an election of etcd's own client library: from the call that resigns to the return of the next candidate's campaign.
// Each candidate has a session on a connection of its own, and one after the other another endpoint.
func handover(flags *flags) map[string]any {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	leader := candidate(flags, 0)
	check(leader.Campaign(ctx, "0"))
	nanos := []int64{}
	for round := 1; round <= flags.rounds; round++ {
		follower := candidate(flags, round)
		led := make(chan int64, 1)
		go func() {
			check(follower.Campaign(ctx, "next"))
			led <- bootNow()
		}()
		time.Sleep(waits)
		begin := bootNow()
		check(leader.Resign(ctx))
		nanos = append(nanos, <-led-begin)
		leader = follower
	}
	return map[string]any{"nanos": nanos}
}

func candidate(flags *flags, number int) *concurrency.Election {
	session, err := concurrency.NewSession(connect(flags.endpoints[number%len(flags.endpoints)]))
	check(err)
	return concurrency.NewElection(session, "handover")
}
