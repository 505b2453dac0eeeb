/// Which paths a cookie goes to (RFC 6265bis §5.1.4). Both are compared as they are written: nothing is
/// decoded.
enum CookiePathRule {
    private static let slash = UInt8(ascii: "/")

    /// Whether a request's path is a cookie's path or below it. `/foo` is not above `/foobar`.
    static func matches(_ path: String, cookiePath: String) -> Bool {
        let path = path.utf8
        let cookiePath = cookiePath.utf8
        guard path.starts(with: cookiePath) else { return false }
        return path.count == cookiePath.count || cookiePath.last == slash
            || path.dropFirst(cookiePath.count).first == slash
    }

    /// The path of a cookie that names none: that of the request up to its last slash, without it.
    static func defaultPath(of path: String) -> String {
        let bytes = path.utf8
        guard bytes.first == slash, let last = bytes.lastIndex(of: slash), last > bytes.startIndex else {
            return "/"
        }
        return String(path[..<last])
    }
}
