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
