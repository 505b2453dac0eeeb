/// The information in the head of an image's file.
public struct ImageInfo: Hashable, Sendable {
    /// The format, determined only by the bytes.
    public var format: ImageFormat
    /// The stored size, before the orientation is applied. For a GIF the logical screen, for animations the canvas.
    public var size: ImageSize
    /// The orientation; `.up` if Exif data is missing, malformed or longer than 64 KiB.
    public var orientation: ImageOrientation
    /// The number of frames; `nil` while it is not known. A JPEG has one. The head of an animated PNG contains the
    /// number. For a GIF or an animated WebP it is known at the end of the file.
    public var frameCount: Int?
    /// Whether there are several frames, or a WebP declares an animation; `nil` while that is not known.
    public var isAnimated: Bool?

    /// Creates the information of an image.
    public init(
        format: ImageFormat, size: ImageSize, orientation: ImageOrientation = .up, frameCount: Int? = nil,
        isAnimated: Bool? = nil
    ) {
        (self.format, self.size, self.orientation, self.frameCount) = (format, size, orientation, frameCount)
        self.isAnimated = isAnimated
    }

    /// The displayed size, after the orientation is applied.
    public var displaySize: ImageSize { orientation.swapsSides ? size.transposed : size }
}

/// The known formats of images.
public enum ImageFormat: String, Hashable, Sendable, CaseIterable {
    /// PNG, including animated PNG.
    case png
    /// JPEG: baseline, progressive, lossless and arithmetic.
    case jpeg
    /// GIF, 87a and 89a.
    case gif
    /// WebP: lossy, lossless and extended.
    case webp

    /// The media type, such as `image/png`.
    public var mediaType: String { "image/\(rawValue)" }
}

/// The size of an image in pixels; both sides are at least 1.
public struct ImageSize: Hashable, Sendable, CustomStringConvertible {
    /// The number of pixels from left to right.
    public var width: Int
    /// The number of pixels from top to bottom.
    public var height: Int

    /// Creates a size.
    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

    /// The number of pixels; `Int.max` if there are more.
    public var pixelCount: Int {
        let (count, isTooLarge) = width.multipliedReportingOverflow(by: height)
        return isTooLarge ? .max : count
    }

    /// The size with width and height swapped.
    public var transposed: ImageSize { ImageSize(width: height, height: width) }

    /// A text such as `640 × 480`.
    public var description: String { "\(width) × \(height)" }
}

/// The transformation to apply before an image is displayed: the values of Exif's tag `Orientation` (0x0112).
public enum ImageOrientation: UInt8, Hashable, Sendable, CaseIterable {
    /// No transformation.
    case up = 1
    /// Mirror left to right.
    case upMirrored = 2
    /// Rotate by 180°.
    case down = 3
    /// Mirror top to bottom.
    case downMirrored = 4
    /// Mirror along the diagonal from the upper left: rows become columns.
    case leftMirrored = 5
    /// Rotate by 90° clockwise.
    case right = 6
    /// Mirror along the diagonal from the upper right.
    case rightMirrored = 7
    /// Rotate by 90° counterclockwise.
    case left = 8

    /// Whether the transformation swaps width and height.
    public var swapsSides: Bool { rawValue >= 5 }
}

/// The limits of an image.
public struct ImageLimits: Hashable, Sendable {
    /// The maximum number of pixels, width times height; 100 million by default. It stops small files that would need
    /// gigabytes.
    public var pixelCount: Int
    /// The maximum number of pixels of a side; 65,535 by default, which is the maximum of JPEG and GIF.
    public var side: Int
    /// The maximum number of bytes before the size is known; 16 MiB by default. It stops endless heads.
    public var headByteCount: Int

    /// Creates limits with the documented defaults.
    public init(pixelCount: Int = 100_000_000, side: Int = 65_535, headByteCount: Int = 16 << 20) {
        (self.pixelCount, self.side, self.headByteCount) = (pixelCount, side, headByteCount)
    }

    /// The default limits.
    public static let `default` = ImageLimits()
}

/// An error in an image: its format is unknown, it is malformed, or it exceeds a limit.
public struct ImageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. More may be added: a `switch` needs a default.
    public enum Code: String, Hashable, Sendable {
        /// The first bytes are not those of a known format.
        case unknownFormat
        /// A part of the file violates its format.
        case malformed
        /// The file ends before its size is known, or, for pixels, before they are complete.
        case truncated
        /// A value above the ``ImageLimits``.
        case limitExceeded
        /// The pixels of the format, or of this variant of it, cannot be decoded.
        case unsupported
        /// The system could not allocate the memory.
        case outOfMemory
    }

    /// The kind of the error.
    public var code: Code
    /// The format, if it is known.
    public var format: ImageFormat?
    /// The offset of the error in the file, in bytes; `nil` if only the decoder noticed it.
    public var byteOffset: Int?
    /// The description of the error.
    public var message: String

    /// Creates an error.
    public init(_ code: Code, format: ImageFormat? = nil, at byteOffset: Int? = nil, _ message: String) {
        (self.code, self.format, self.byteOffset, self.message) = (code, format, byteOffset, message)
    }

    /// The format, the offset, the message and the code.
    public var description: String {
        let kind = format.map { "\($0.rawValue): " } ?? ""
        let place = byteOffset.map { "at byte \($0): " } ?? ""
        return "\(kind)\(place)\(message) (\(code.rawValue))"
    }
}
