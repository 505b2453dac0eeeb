import MartletWire

/// What the steps of a call add to a request: cookies, and an answer to who is calling.
struct CallSupplement: Sendable {
    /// The value of `Cookie` from the jar, beside what the caller set.
    var cookies: [UInt8]?
    /// The value of `Authorization`.
    var authorization: [UInt8]?
    /// Who calls, where ``authorization`` is another for each request of theirs.
    var identity: String?
    /// What the cache adds: conditions, and directives for the caches on the way.
    var cacheFields = FieldBlock()

    /// Whether the body waits until the server has said whether it wants it (RFC 9110 §10.1.1).
    var asksFirst = false
    /// Whether the request is sent with an empty body in place of its own, which follows when the server has answered.
    var withholdsBody = false

    var isEmpty: Bool {
        cookies == nil && authorization == nil && cacheFields.isEmpty && !asksFirst && !withholdsBody
    }
}
