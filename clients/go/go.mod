module github.com/bellwether-rs/bellwether/clients/go

go 1.21
