public import MartletClient

/// Makes an ``ImageInfo`` of an answer: `.imageInfo` where a decoder is asked for.
public struct ImageInfoResponseDecoder: ResponseDecoder {
    /// What an image may have at most.
    public var limits: ImageLimits

    /// A decoder.
    public init(limits: ImageLimits = .default) { self.limits = limits }

    /// `image/png`, `image/jpeg`, `image/gif`, `image/webp`, and `image/apng`, which is a PNG.
    public var acceptableContentTypes: [String] { ImageFormat.allCases.map(\.mediaType) + ["image/apng"] }

    /// Reads the head of the image.
    /// - Throws: An ``ImageError``.
    public func decode(_ exchange: HTTPExchange) throws -> ImageInfo {
        try ImageInfo(exchange.body, limits: limits)
    }
}

extension ResponseDecoder where Self == ImageInfoResponseDecoder {
    /// Format, size, orientation and frames of an image, within the default limits.
    public static var imageInfo: ImageInfoResponseDecoder { ImageInfoResponseDecoder() }

    /// Format, size, orientation and frames of an image.
    public static func imageInfo(limits: ImageLimits) -> ImageInfoResponseDecoder {
        ImageInfoResponseDecoder(limits: limits)
    }
}
