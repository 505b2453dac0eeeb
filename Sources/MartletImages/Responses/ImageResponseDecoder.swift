public import MartletCore

#if ImageDecoding
    /// Makes a ``PixelImage`` of an answer: `.image` where a decoder is asked for.
    public struct ImageResponseDecoder: ResponseDecoder {
        /// How the image is decoded.
        public var options: ImageDecodingOptions

        /// A decoder.
        public init(options: ImageDecodingOptions = .default) { self.options = options }

        /// `image/png` and `image/jpeg`, and `image/apng`, of which the first image is decoded.
        public var acceptableContentTypes: [String] { ["image/png", "image/jpeg", "image/apng"] }

        /// Decodes the image, on the caller's thread.
        /// - Throws: An ``ImageError``.
        public func decode(_ exchange: HTTPExchange) throws -> PixelImage {
            try PixelImage(exchange.body, options: options)
        }
    }

    extension ResponseDecoder where Self == ImageResponseDecoder {
        /// The pixels of an image, turned upright, within the default limits.
        public static var image: ImageResponseDecoder { ImageResponseDecoder() }

        /// The pixels of an image.
        public static func image(options: ImageDecodingOptions) -> ImageResponseDecoder {
            ImageResponseDecoder(options: options)
        }
    }

    extension HTTPExchange {
        /// Decodes the body to pixels, provided that the status is 2xx. The format is told by the bytes; `Content-Type` is
        /// not looked at. It takes as long as the image is large, on the caller's thread.
        ///
        /// - Parameter options: How the image is decoded.
        /// - Throws: An `HTTPError` with the code `.unacceptableStatus` that carries this exchange; an ``ImageError``.
        public func image(options: ImageDecodingOptions = .default) throws -> PixelImage {
            try PixelImage(validated().body, options: options)
        }
    }
#endif

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

extension HTTPExchange {
    /// What the body says about its image, provided that the status is 2xx: format, size, orientation, frames. The format is
    /// told by the bytes; `Content-Type` is not looked at.
    ///
    /// - Parameter limits: What the image may have at most.
    /// - Throws: An `HTTPError` with the code `.unacceptableStatus` that carries this exchange; an ``ImageError``.
    public func imageInfo(limits: ImageLimits = .default) throws -> ImageInfo {
        try ImageInfo(validated().body, limits: limits)
    }
}

extension ResponseBody {
    /// Reads the body until what stands before the pixels is known: mostly the first few KiB. What was read is gone from the
    /// body; whoever wants that too feeds an ``ImageInfoReader`` piece by piece.
    ///
    /// - Parameter limits: What the image may have at most.
    /// - Throws: An ``ImageError``; an `HTTPError`, as the body does; `CancellationError`.
    public func imageInfo(limits: ImageLimits = .default) async throws -> ImageInfo {
        var reader = ImageInfoReader(limits: limits)
        var pieces = makeAsyncIterator()
        while !reader.hasHead, let piece = try await pieces.next() { try reader.feed(piece) }
        return try reader.finish()
    }
}

#if ImageDecoding
    public import MartletCaching
    public import MartletCore
    public import MartletNetwork

    extension DecodedCache where Value == PixelImage {
        /// A cache of images, or of thumbnails, which cost four bytes a pixel; the format is told by the bytes.
        ///
        /// ```swift
        /// let thumbnails = DecodedCache(imagesOf: session, options: ImageDecodingOptions(wantedSide: 200))
        /// ```
        ///
        /// - Parameters:
        ///   - session: Where requests are made.
        ///   - options: How images are decoded.
        ///   - limit: What the pixels may take in all; 64 MiB by default. Images above it are delivered and not kept.
        ///   - countLimit: How many images there may be; 10,000 by default.
        ///   - memoryPressure: What tells that memory is short; `nil` for nothing.
        public convenience init(
            imagesOf session: HTTPSession, options: ImageDecodingOptions = .default,
            limit: ByteCount = .mebibytes(64), countLimit: Int = 10_000,
            memoryPressure: MemoryPressureSource? = .system
        ) {
            self.init(
                session: session, limit: limit, countLimit: countLimit, memoryPressure: memoryPressure,
                cost: { $0.pixels.count }
            ) { try $0.image(options: options) }
        }
    }
#endif
