// Candidates made of concurrency.Election of etcd's own client library, as it is published: a key for each, with a lease, and a queue.
package main

import (
	"context"
	"math"
	"strings"
	"time"

	"bellwether.test/candidate"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

func main() {
	candidate.Run(candidate.Library{
		Name:    "concurrency.Election of etcd's client",
		Module:  "go.etcd.io/etcd/client/v3",
		Prepare: func(context.Context, *candidate.Flags) error { return nil },
		Connect: connect,
	})
}

// connect opens a session: its lease is kept alive for all elections of the process.
func connect(_ context.Context, flags *candidate.Flags) (candidate.Connection, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   strings.Split(flags.URL, ","),
		DialTimeout: 5 * time.Second,
		Logger:      zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	options := []concurrency.SessionOption{}
	if flags.TTL > 0 {
		options = append(options, concurrency.WithTTL(int(math.Ceil(flags.TTL.Seconds()))))
	}
	session, err := concurrency.NewSession(client, options...)
	return connection{session}, err
}

type connection struct{ session *concurrency.Session }

func (connection connection) Campaign(ctx context.Context, candidate candidate.Candidate) error {
	election := concurrency.NewElection(connection.session, candidate.Election)
	if err := election.Campaign(ctx, candidate.ID); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	// It has no call that tells without asking the server; what it leads ends with the session.
	candidate.Leads(nil)
	select {
	case <-ctx.Done():
	case <-connection.session.Done():
	}
	candidate.Stopped()
	return election.Resign(context.Background())
}
