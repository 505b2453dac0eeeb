public import MartletCore

/// Decodes a response to an ``ImageInfo``. Use it as `.imageInfo`.
public struct ImageInfoResponseDecoder: ResponseDecoder {
    /// The limits of the image.
    public var limits: ImageLimits

    /// Creates a decoder.
    public init(limits: ImageLimits = .default) { self.limits = limits }

    /// `image/png`, `image/jpeg`, `image/gif`, `image/webp`, and `image/apng`, which is a PNG.
    public var acceptableContentTypes: [String] { ImageFormat.allCases.map(\.mediaType) + ["image/apng"] }

    /// Reads the head of the image.
    /// - Throws: An ``ImageError``.
    public func decode(_ exchange: HTTPExchange) throws -> ImageInfo { try ImageInfo(exchange.body, limits: limits) }
}

extension ResponseDecoder where Self == ImageInfoResponseDecoder {
    /// The format, size, orientation and frames of an image, with the default limits.
    public static var imageInfo: ImageInfoResponseDecoder { ImageInfoResponseDecoder() }

    /// The format, size, orientation and frames of an image.
    public static func imageInfo(limits: ImageLimits) -> ImageInfoResponseDecoder {
        ImageInfoResponseDecoder(limits: limits)
    }
}

extension HTTPExchange {
    /// Reads the format, size, orientation and frames of the image in the body if the status is 2xx. The bytes
    /// determine the format; `Content-Type` is ignored.
    /// - Throws: An `HTTPError` with the code `.unacceptableStatus` that carries this exchange; an ``ImageError``.
    public func imageInfo(limits: ImageLimits = .default) throws -> ImageInfo {
        try ImageInfo(validated().body, limits: limits)
    }
}

extension ResponseBody {
    /// Reads the body until the information before the pixels is known, which is usually in the first few KiB. The read
    /// bytes are removed from the body. If you need them, feed an ``ImageInfoReader`` piece by piece instead.
    /// - Throws: An ``ImageError``; an `HTTPError` of the body; `CancellationError`.
    public func imageInfo(limits: ImageLimits = .default) async throws -> ImageInfo {
        var reader = ImageInfoReader(limits: limits)
        var pieces = makeAsyncIterator()
        while !reader.hasHead, let piece = try await pieces.next() { try reader.feed(piece) }
        return try reader.finish()
    }
}

#if ImageDecoding
    public import MartletCaching
    public import MartletConditions

    /// Decodes a response to a ``PixelImage``. Use it as `.image`.
    public struct ImageResponseDecoder: ResponseDecoder {
        /// The options of decoding.
        public var options: ImageDecodingOptions

        /// Creates a decoder.
        public init(options: ImageDecodingOptions = .default) { self.options = options }

        /// `image/png`, `image/jpeg`, and `image/apng`, whose first image is decoded.
        public var acceptableContentTypes: [String] { ["image/png", "image/jpeg", "image/apng"] }

        /// Decodes the image, on the caller's thread.
        /// - Throws: An ``ImageError``.
        public func decode(_ exchange: HTTPExchange) throws -> PixelImage {
            try PixelImage(exchange.body, options: options)
        }
    }

    extension ResponseDecoder where Self == ImageResponseDecoder {
        /// The pixels of an image with its orientation applied, with the default limits.
        public static var image: ImageResponseDecoder { ImageResponseDecoder() }

        /// The pixels of an image.
        public static func image(options: ImageDecodingOptions) -> ImageResponseDecoder {
            ImageResponseDecoder(options: options)
        }
    }

    extension HTTPExchange {
        /// Decodes the body to pixels if the status is 2xx. The bytes determine the format; `Content-Type` is ignored.
        /// Decoding runs on the caller's thread. Its time is proportional to the size of the image.
        /// - Throws: An `HTTPError` with the code `.unacceptableStatus` that carries this exchange; an ``ImageError``.
        public func image(options: ImageDecodingOptions = .default) throws -> PixelImage {
            try PixelImage(validated().body, options: options)
        }
    }

    extension DecodedCache where Value == PixelImage {
        /// Creates a cache of images or thumbnails, with four bytes per pixel. The bytes determine the format.
        ///
        /// ```swift
        /// let thumbnails = try DecodedCache(
        ///     imagesOf: session, options: ImageDecodingOptions(thumbnailMaxPixelSize: 200))
        /// ```
        ///
        /// - Parameters:
        ///   - session: The session of the requests.
        ///   - options: The limits, the size and the orientation of the images.
        ///   - limit: The maximum size of all pixels; 64 MiB by default. Larger images are returned but not stored.
        ///   - countLimit: The maximum number of images; 10,000 by default.
        ///   - memoryPressure: The source of memory pressure; `nil` for none.
        /// - Throws: An `HTTPError` with the code `.invalidRequest` if the session has no response cache.
        public convenience init(
            imagesOf session: HTTPSession, options: ImageDecodingOptions = .default, limit: ByteCount = .mebibytes(64),
            countLimit: Int = 10_000, memoryPressure: MemoryPressureSource? = .system
        ) throws(HTTPError) {
            try self.init(
                session: session, limit: limit, countLimit: countLimit, memoryPressure: memoryPressure,
                cost: { $0.pixels.count }
            ) { try $0.image(options: options) }
        }
    }
#endif
