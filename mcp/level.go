package mcp

// LogLevels are the severities of log messages, least first (2025-11-25 and
// 2026-07-28, server/utilities/logging).
var LogLevels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
