/// Whether a message lets its connection live on (RFC 9112 §9.3).
package enum PersistenceRule {
    /// Decides by version and `Connection`, in any case and list form: `close` wins, HTTP/1.1 stays open, and
    /// HTTP/1.0 only with `keep-alive`.
    package static func persists(version: WireVersion, fields: FieldBlock) -> Bool {
        if fields.contains("Connection", token: "close") { return false }
        return version == .http11 || fields.contains("Connection", token: "keep-alive")
    }
}
