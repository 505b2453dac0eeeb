/// What the steps of a call add to a request: cookies, and an answer to who is calling.
struct CallSupplement: Sendable {
    /// The value of `Cookie` from the jar, beside what the caller set.
    var cookies: [UInt8]?
    /// The value of `Authorization`.
    var authorization: [UInt8]?

    var isEmpty: Bool { cookies == nil && authorization == nil }
}
