// Package database opens the two kinds of database windrow works on and
// translates what their drivers report into the errors of package model.
package database
