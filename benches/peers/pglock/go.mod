module bellwether.test/pglock

go 1.26.0

require (
	bellwether.test/candidate v0.0.0
	cirello.io/pglock v1.16.1
)

require (
	github.com/lib/pq v1.10.9 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace bellwether.test/candidate => ../candidate
