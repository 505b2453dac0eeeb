/// The reader of one format, behind its signature.
protocol ImageFileReader: Sendable {
    /// Takes what it can of the bytes.
    ///
    /// - Returns: Whether to go on at once: false when more bytes are needed.
    mutating func step(_ bytes: inout ImageBytes, _ facts: inout ImageFacts) throws(ImageError) -> Bool

    /// Whether nothing that follows would be looked at.
    var isDone: Bool { get }
}
