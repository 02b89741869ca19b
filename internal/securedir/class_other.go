//go:build !windows

package securedir

var systemClasses []class
