// Candidates made of cirello.io/pglock, as it is published: leases in a table of PostgreSQL.
package main

import (
	"context"
	"database/sql"

	"bellwether.test/candidate"
	"cirello.io/pglock"
)

func main() {
	candidate.Run(candidate.Library{
		Name:   "pglock",
		Module: "cirello.io/pglock",
		Prepare: func(_ context.Context, flags *candidate.Flags) error {
			locks, err := open(flags)
			if err != nil {
				return err
			}
			return locks.TryCreateTable()
		},
		Connect: func(_ context.Context, flags *candidate.Flags) (candidate.Connection, error) {
			locks, err := open(flags)
			return connection{locks}, err
		},
	})
}

// Of a process with many elections.
const sessions = 50

func open(flags *candidate.Flags) (*pglock.Client, error) {
	database, err := sql.Open("postgres", flags.URL)
	if err != nil {
		return nil, err
	}
	if flags.Elections > 1 {
		// All would connect at once, and the server would refuse most.
		database.SetMaxOpenConns(sessions)
	}
	options := []pglock.ClientOption{}
	if flags.TTL > 0 {
		options = append(options, pglock.WithLeaseDuration(flags.TTL))
	}
	if flags.Renew > 0 {
		options = append(options, pglock.WithHeartbeatFrequency(flags.Renew))
	}
	return pglock.New(database, options...)
}

type connection struct{ locks *pglock.Client }

func (connection connection) Campaign(ctx context.Context, candidate candidate.Candidate) error {
	for ctx.Err() == nil {
		err := connection.locks.Do(ctx, candidate.Election, func(term context.Context, lock *pglock.Lock) error {
			candidate.Leads(func() bool { return !lock.IsReleased() })
			<-term.Done()
			candidate.Stopped()
			return nil
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
