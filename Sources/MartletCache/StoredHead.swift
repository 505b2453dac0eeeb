package import MartletWire

/// Everything of a stored response but its body: what decides whether it may be used.
package struct StoredHead: Equatable, Sendable {
    /// A request field that the response was chosen by (RFC 9111 §4.1).
    package struct Selection: Hashable, Sendable {
        /// The field's name, in lower case.
        package var name: String
        /// Its normalised value in the request that was answered; `nil` where the request had no such field.
        package var value: String?

        /// A field and its value.
        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    /// The URL and whose it is.
    package var key: CacheKey
    /// The status code.
    package var status: Int
    /// The reason phrase, as it came; empty where it was not UTF-8.
    package var reason: String
    /// The fields, in order, without those that are never stored (RFC 9111 §3.1).
    package var fields: FieldBlock
    /// Fields behind the body; `nil` for none. They are never merged into the head.
    package var trailers: FieldBlock?
    /// What `Vary` names, sorted by name; empty where it names nothing.
    package var selections: [Selection]
    /// When the request that brought it, or validated it last, was sent.
    package var requestTime: WallTime
    /// When its head came.
    package var responseTime: WallTime
    /// Whether the request had an `Authorization` field (RFC 9111 §3.5).
    package var wasAuthorized: Bool

    /// A head, field by field.
    package init(
        key: CacheKey, status: Int, reason: String, fields: FieldBlock, trailers: FieldBlock? = nil,
        selections: [Selection] = [], requestTime: WallTime, responseTime: WallTime,
        wasAuthorized: Bool = false
    ) {
        self.key = key
        self.status = status
        self.reason = reason
        self.fields = fields
        self.trailers = trailers
        self.selections = selections
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.wasAuthorized = wasAuthorized
    }
}
