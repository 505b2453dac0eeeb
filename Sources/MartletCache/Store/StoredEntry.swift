/// What an entry's file holds.
package struct StoredEntry: Equatable, Sendable {
    /// All but the body.
    package var head: StoredHead
    /// A number drawn for each body that is stored. A larger body's file carries it in its name.
    package var generation: UInt64
    /// The body's length in bytes.
    package var bodyByteCount: UInt64
    /// The body where it lies in the same file; `nil` where it has a file of its own.
    package var inlineBody: [UInt8]?
    var checksums: BlockChecksums
}
