package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// put writes with many clients at once, each of which waits for its answer before it writes again.
func put(flags *flags) map[string]any {
	clients := make([]*clientv3.Client, flags.clients)
	var connecting sync.WaitGroup
	for i := range clients {
		connecting.Go(func() {
			clients[i] = connect(flags.endpoints...)
			_, err := clients[i].Get(context.Background(), "connected")
			check(err)
		})
	}
	connecting.Wait()
	value := strings.Repeat("v", flags.bytes)
	var next atomic.Int64
	took := make([][]int64, len(clients))
	begin := bootNow()
	end := begin + flags.lasting.Nanoseconds()
	var writing sync.WaitGroup
	for i, client := range clients {
		writing.Go(func() {
			for begun := bootNow(); begun < end; {
				number := next.Add(1)
				if number > flags.writes {
					break
				}
				key := fmt.Sprintf("%08d", number%int64(flags.keys))
				_, err := client.Put(context.Background(), key, value)
				check(err)
				now := bootNow()
				took[i] = append(took[i], now-begun)
				begun = now
			}
		})
	}
	writing.Wait()
	lasted := time.Duration(bootNow() - begin)
	all := slices.Concat(took...)
	slices.Sort(all)
	return map[string]any{
		"writes":       len(all),
		"lasted_nanos": lasted.Nanoseconds(),
		"p50_nanos":    all[len(all)/2],
		"p99_nanos":    all[len(all)*99/100],
	}
}
