#if ImageDecoding
    public import MartletClient

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
