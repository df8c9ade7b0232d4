// Candidates made of github.com/ali-assar/NATS-Leader-Election, as it is published: keys of a JetStream bucket, which expire.
package main

import (
	"context"
	"fmt"
	"time"

	"bellwether.test/candidate"
	"github.com/ali-assar/NATS-Leader-Election/leader"
	"github.com/nats-io/nats.go"
)

// What its documentation and its own program use; it has no defaults.
const (
	ttl        = 10 * time.Second
	heartbeat  = time.Second
	validation = 5 * time.Second
)

func main() {
	candidate.Run(candidate.Library{
		Name:    "NATS-Leader-Election",
		Module:  "github.com/ali-assar/NATS-Leader-Election",
		Prepare: prepare,
		Connect: func(_ context.Context, flags *candidate.Flags) (candidate.Connection, error) {
			conn, err := nats.Connect(flags.URL, nats.MaxReconnects(-1))
			return connection{conn, flags}, err
		},
	})
}

// prepare makes the bucket; all keys of one expire after the same time.
func prepare(_ context.Context, flags *candidate.Flags) error {
	conn, err := nats.Connect(flags.URL)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.JetStream()
	if err != nil {
		return err
	}
	lasting := or(flags.TTL, ttl)
	config := nats.KeyValueConfig{Bucket: bucket(lasting), TTL: lasting, Storage: nats.FileStorage}
	_, err = stream.CreateKeyValue(&config)
	return err
}

type connection struct {
	conn  *nats.Conn
	flags *candidate.Flags
}

func (connection connection) Campaign(ctx context.Context, candidate candidate.Candidate) error {
	lasting, renewing := or(connection.flags.TTL, ttl), or(connection.flags.Renew, heartbeat)
	election, err := leader.NewElectionWithConn(connection.conn, leader.ElectionConfig{
		Bucket:             bucket(lasting),
		Group:              candidate.Election,
		InstanceID:         candidate.ID,
		TTL:                lasting,
		HeartbeatInterval:  renewing,
		ValidationInterval: max(renewing, lasting*time.Duration(validation)/time.Duration(ttl)),
	})
	if err != nil {
		return err
	}
	election.OnPromote(func(context.Context, string) { candidate.Leads(election.IsLeader) })
	election.OnDemote(candidate.Stopped)
	// Ended below, in order: its own context would end it without giving the key back.
	if err := election.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return election.StopWithContext(context.Background(), leader.StopOptions{DeleteKey: true, WaitForDemote: true})
}

func bucket(lasting time.Duration) string { return fmt.Sprintf("leaders-%d", lasting.Milliseconds()) }

func or(flag, otherwise time.Duration) time.Duration {
	if flag > 0 {
		return flag
	}
	return otherwise
}
