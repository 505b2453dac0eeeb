/// Where the bytes of a request's body come from.
package protocol BodySource: AnyObject, Sendable {
    /// The next bytes; `nil` after the last. Empty arrays are passed over.
    ///
    /// Called by one task, one call at a time. When that task is cancelled it should return or throw soon.
    func next() async throws -> [UInt8]?
}

/// A request's body as an exchange sends it.
package enum OutgoingBody: Sendable {
    /// No body, and no framing field.
    case none
    /// Bytes in memory.
    case bytes([UInt8])
    /// Bytes as they come: framed by a length that must be met exactly, else in chunks.
    case source(any BodySource, length: UInt64?)
}
