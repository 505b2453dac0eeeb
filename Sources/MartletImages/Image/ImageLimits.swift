/// What an image may have at most.
public struct ImageLimits: Hashable, Sendable {
    /// The most pixels, width times height; 100 million by default. Stops files of a few bytes that ask for gigabytes.
    public var pixelCount: Int
    /// The most pixels of a side; 65,535 by default, what JPEG and GIF can have.
    public var side: Int
    /// The most bytes before the size is known; 16 MiB by default. Stops heads that never end.
    public var headByteCount: Int

    /// Limits; the defaults where nothing is said.
    public init(pixelCount: Int = 100_000_000, side: Int = 65_535, headByteCount: Int = 16 << 20) {
        self.pixelCount = pixelCount
        self.side = side
        self.headByteCount = headByteCount
    }

    /// The defaults.
    public static let `default` = ImageLimits()
}
