/// A place in a document.
public struct XMLPosition: Hashable, Sendable, CustomStringConvertible {
    /// The line, from 1. CR, LF and CR LF end a line.
    public var line = 1
    /// The column in characters (Unicode scalars), from 1.
    public var column = 1
    /// How many bytes come before, byte order mark included.
    public var byteOffset = 0

    /// A place.
    public init(line: Int = 1, column: Int = 1, byteOffset: Int = 0) {
        self.line = line
        self.column = column
        self.byteOffset = byteOffset
    }

    /// `line 3, column 7 (byte 41)`.
    public var description: String { "line \(line), column \(column) (byte \(byteOffset))" }
}
