/// The size of an image in pixels; both sides are at least 1.
public struct ImageSize: Hashable, Sendable, CustomStringConvertible {
    /// Pixels from left to right.
    public var width: Int
    /// Pixels from top to bottom.
    public var height: Int

    /// A size.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// How many pixels there are; `Int.max` where they are more than that.
    public var pixelCount: Int {
        let (count, isTooLarge) = width.multipliedReportingOverflow(by: height)
        return isTooLarge ? .max : count
    }

    /// Width and height in each other's place.
    public var turned: ImageSize { ImageSize(width: height, height: width) }

    /// `640 × 480`.
    public var description: String { "\(width) × \(height)" }
}
