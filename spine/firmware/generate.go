package firmware

//go:generate go run ./internal/rebuild
