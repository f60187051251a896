package firmware

//go:generate go run ./rebuild
