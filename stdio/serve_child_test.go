package stdio_test

func childServer([]string) {}
func childDeaf([]string)   {}
