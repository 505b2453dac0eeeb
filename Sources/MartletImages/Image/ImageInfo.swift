/// What the head of an image's file says about it.
public struct ImageInfo: Hashable, Sendable {
    /// The format, told by the bytes alone.
    public var format: ImageFormat
    /// The size as it is stored, before it is turned. Of a GIF it is that of the logical screen, of an animated image that
    /// of its canvas.
    public var size: ImageSize
    /// How it has to be turned. Exif data that makes no sense, or that is longer than 64 KiB, is passed over: `.up`.
    public var orientation: ImageOrientation
    /// How many frames there are; nil as long as it is not known. A JPEG has one; of a PNG the animation's head says how
    /// many; of a GIF and a WebP it is known at the end.
    public var frameCount: Int?
    /// Whether there are several frames, or, of a WebP, its head says so; nil as long as it is not known.
    public var isAnimated: Bool?

    /// What is known of an image.
    public init(
        format: ImageFormat, size: ImageSize, orientation: ImageOrientation = .up, frameCount: Int? = nil,
        isAnimated: Bool? = nil
    ) {
        self.format = format
        self.size = size
        self.orientation = orientation
        self.frameCount = frameCount
        self.isAnimated = isAnimated
    }

    /// The size as it is seen, once it is turned.
    public var displaySize: ImageSize { orientation.swapsSides ? size.turned : size }
}

/// The formats of images that are known.
public enum ImageFormat: String, Hashable, Sendable, CaseIterable {
    /// PNG, animated PNG among them.
    case png
    /// JPEG: baseline, progressive, lossless and arithmetic alike.
    case jpeg
    /// GIF, 87a and 89a.
    case gif
    /// WebP: lossy, lossless and extended.
    case webp

    /// The media type: `image/png` and so on.
    public var mediaType: String { "image/\(rawValue)" }
}

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

/// How an image has to be turned to be seen as it was taken: the numbers of Exif's tag `Orientation` (0x0112).
public enum ImageOrientation: UInt8, Hashable, Sendable, CaseIterable {
    /// As it is stored.
    case up = 1
    /// Mirrored left to right.
    case upMirrored = 2
    /// Turned by 180°.
    case down = 3
    /// Mirrored top to bottom.
    case downMirrored = 4
    /// Mirrored along the diagonal from the upper left: rows become columns.
    case leftMirrored = 5
    /// To be turned by 90° clockwise.
    case right = 6
    /// Mirrored along the diagonal from the upper right.
    case rightMirrored = 7
    /// To be turned by 90° counter-clockwise.
    case left = 8

    /// Whether width and height change places.
    public var swapsSides: Bool { rawValue >= 5 }
}

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

/// Why bytes are no image that is known, sound and within the limits.
public struct ImageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong. More may be added: a `switch` needs a default.
    public enum Code: String, Hashable, Sendable {
        /// The first bytes are those of no format that is known.
        case unknownFormat
        /// A part of the file breaks the rules of its format.
        case malformed
        /// The file ends before its size is known, or, where pixels are asked for, before they are complete.
        case truncated
        /// More than ``ImageLimits`` allow.
        case limitExceeded
        /// The format, or a variety of it, is known and its pixels cannot be decoded.
        case unsupported
        /// The system refused the memory.
        case outOfMemory
    }

    /// What is wrong.
    public var code: Code
    /// The format, where it is known.
    public var format: ImageFormat?
    /// Where in the file it was noticed, in bytes from its beginning; nil where only the decoder noticed it.
    public var byteOffset: Int?
    /// What is wrong, in words.
    public var message: String

    /// An error.
    public init(_ code: Code, format: ImageFormat? = nil, at byteOffset: Int? = nil, _ message: String) {
        self.code = code
        self.format = format
        self.byteOffset = byteOffset
        self.message = message
    }

    /// The format, the place, the message and the code.
    public var description: String {
        let kind = format.map { "\($0.rawValue): " } ?? ""
        let place = byteOffset.map { "at byte \($0): " } ?? ""
        return "\(kind)\(place)\(message) (\(code.rawValue))"
    }
}
