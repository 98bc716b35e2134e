package tasks

// testProcess is what this test program does when it is started as a child.
func testProcess(string) int { return 0 }
