#if ImageDecoding
    public import MartletClient

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
