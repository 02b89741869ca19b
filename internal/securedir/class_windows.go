package securedir

import "golang.org/x/sys/windows"

var systemClasses = []class{
	{windows.ERROR_DISK_FULL, "full"},
	{windows.ERROR_HANDLE_DISK_FULL, "full"},
	{windows.ERROR_DISK_QUOTA_EXCEEDED, "full"},
	{windows.ERROR_FILE_TOO_LARGE, "full"},
	{windows.ERROR_TOO_MANY_OPEN_FILES, "too many files"},
	{windows.ERROR_NO_SYSTEM_RESOURCES, "memory"},
	{windows.ERROR_NOT_ENOUGH_MEMORY, "memory"},
	{windows.ERROR_WRITE_PROTECT, "read-only"},
	{windows.ERROR_SHARING_VIOLATION, "busy"},
	{windows.ERROR_DIRECTORY, "unsafe"},               // a file where a directory should be
	{windows.ERROR_DIRECTORY_NOT_SUPPORTED, "unsafe"}, // the other way round
	{windows.ERROR_CANT_ACCESS_FILE, "unsafe"},        // a reparse point nobody answers for
}
