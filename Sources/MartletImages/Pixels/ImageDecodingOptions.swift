#if ImageDecoding
    /// How an image becomes pixels.
    public struct ImageDecodingOptions: Hashable, Sendable {
        /// The most pixels that are made, four bytes each: 50 million, 200 MB, by default. It is compared before any memory
        /// is taken, so that a small file cannot ask for much (a decompression bomb).
        public var pixelCountLimit: Int
        /// Whether the image is turned as its Exif data says; true by default.
        public var appliesOrientation: Bool
        /// The size that is wanted of the longer side, for thumbnails; nil, the default, for the image as it is.
        ///
        /// A JPEG is decoded by the smallest of the factors 1/8, 2/8 … 8/8 whose longer side is not below it, which takes a
        /// fraction of the time and memory. A PNG is decoded as it is.
        public var wantedSide: Int?
        /// Whether a JPEG that is cut short or damaged is decoded as far as it goes, the rest grey; false by default.
        public var acceptsDamage: Bool

        /// Options; the defaults where nothing is said.
        public init(
            pixelCountLimit: Int = 50_000_000, appliesOrientation: Bool = true, wantedSide: Int? = nil,
            acceptsDamage: Bool = false
        ) {
            self.pixelCountLimit = pixelCountLimit
            self.appliesOrientation = appliesOrientation
            self.wantedSide = wantedSide
            self.acceptsDamage = acceptsDamage
        }

        /// The defaults.
        public static let `default` = ImageDecodingOptions()
    }
#endif
