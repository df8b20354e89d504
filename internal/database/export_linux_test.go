package database

// NetworkName lets the test ask for file systems that it can't mount.
var NetworkName = networkName
