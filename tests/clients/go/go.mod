module bellwether.test/witness

go 1.21

require github.com/bellwether-rs/bellwether/clients/go v0.0.0

replace github.com/bellwether-rs/bellwether/clients/go => ../../../clients/go
