#if ImageDecoding
    /// An image as pixels: red, green, blue and alpha, a byte each, row by row from the top, without gaps.
    ///
    /// The colors of a PNG are converted to sRGB; those of a JPEG are as in the file. They are not premultiplied by
    /// alpha.
    public struct PixelImage: Hashable, Sendable, CustomStringConvertible {
        /// The size in pixels.
        public let size: ImageSize
        /// The pixels, four bytes each: `4 * size.width * size.height` in all.
        public let pixels: [UInt8]
        /// The orientation that is not applied yet; `.up` once it is applied.
        public let orientation: ImageOrientation
    }

    // In an extension, so that the structure keeps its memberwise initializer.
    extension PixelImage {
        /// Decodes a PNG or a JPEG.
        /// - Parameters:
        ///   - bytes: The whole file.
        ///   - options: The limits, the size and the orientation of the result.
        /// - Throws: An ``ImageError``: `.unsupported` for a GIF or a WebP, `.limitExceeded` before memory is
        ///   allocated.
        public init(_ bytes: [UInt8], options: ImageDecodingOptions = .default) throws(ImageError) {
            // Nothing is limited here: the file is in memory, and the number of decoded pixels is checked later.
            let limits = ImageLimits(pixelCount: .max, side: .max, headByteCount: .max)
            let info = try ImageInfo(bytes, limits: limits)
            let stored: PixelImage
            switch info.format {
            case .png: stored = try PNGDecoder.decode(bytes, info, options)
            case .jpeg: stored = try JPEGDecoder.decode(bytes, info, options)
            case .gif, .webp:
                throw ImageError(.unsupported, format: info.format, "the pixels of this format are not decoded")
            }
            self = options.appliesOrientation ? stored.upright() : stored
        }

        /// The four bytes of a pixel; `nil` outside of the image.
        public subscript(x: Int, y: Int) -> ArraySlice<UInt8>? {
            guard (0..<size.width).contains(x), (0..<size.height).contains(y) else { return nil }
            let place = (y * size.width + x) * 4
            return pixels[place..<place + 4]
        }

        /// The size, and the orientation if it is not applied.
        public var description: String {
            orientation == .up ? "\(size)" : "\(size), orientation \(orientation.rawValue)"
        }

        /// The image with its orientation applied.
        public func upright() -> PixelImage {
            guard orientation != .up else { return self }
            let target = orientation.swapsSides ? size.transposed : size
            var turned: [UInt8] = []
            turned.reserveCapacity(pixels.count)
            let (right, bottom) = (size.width - 1, size.height - 1)
            for y in 0..<target.height {
                for x in 0..<target.width {
                    let (column, row) =
                        switch orientation {
                        case .up: (x, y)
                        case .upMirrored: (right - x, y)
                        case .down: (right - x, bottom - y)
                        case .downMirrored: (x, bottom - y)
                        case .leftMirrored: (y, x)
                        case .right: (y, bottom - x)
                        case .rightMirrored: (right - y, bottom - x)
                        case .left: (right - y, x)
                        }
                    let place = (row * size.width + column) * 4
                    turned.append(pixels[place])
                    turned.append(pixels[place + 1])
                    turned.append(pixels[place + 2])
                    turned.append(pixels[place + 3])
                }
            }
            return PixelImage(size: target, pixels: turned, orientation: .up)
        }

        /// Checks the limit for an image, and returns the number of bytes of its pixels.
        static func byteCount(of size: ImageSize, _ format: ImageFormat, _ options: ImageDecodingOptions)
            throws(ImageError) -> Int
        {
            let (count, isTooLarge) = size.pixelCount.multipliedReportingOverflow(by: 4)
            guard size.pixelCount <= options.pixelCountLimit, !isTooLarge else {
                throw ImageError(
                    .limitExceeded, format: format, "an image of \(size) pixels; \(options.pixelCountLimit) are allowed"
                )
            }
            return count
        }
    }

    /// The options of decoding an image.
    public struct ImageDecodingOptions: Hashable, Sendable {
        /// The maximum number of decoded pixels, four bytes each; 50 million (200 MB) by default. It is checked before
        /// memory is allocated, to reject small files that would need much of it (decompression bombs).
        public var pixelCountLimit: Int
        /// Whether the orientation of the Exif data is applied; `true` by default.
        public var appliesOrientation: Bool
        /// The wanted size of the longer side, for thumbnails; `nil`, the default, for the full size.
        ///
        /// A JPEG is scaled by the smallest of the factors 1/8, 2/8 … 8/8 whose longer side is at least this size,
        /// which takes a fraction of the time and memory. A PNG is not scaled.
        public var thumbnailMaxPixelSize: Int?
        /// Whether a truncated or damaged JPEG is decoded as far as possible, the rest gray; `false` by default.
        public var allowsDamagedData: Bool

        /// Creates options with the documented defaults.
        public init(
            pixelCountLimit: Int = 50_000_000, appliesOrientation: Bool = true, thumbnailMaxPixelSize: Int? = nil,
            allowsDamagedData: Bool = false
        ) {
            (self.pixelCountLimit, self.appliesOrientation) = (pixelCountLimit, appliesOrientation)
            (self.thumbnailMaxPixelSize, self.allowsDamagedData) = (thumbnailMaxPixelSize, allowsDamagedData)
        }

        /// The default options.
        public static let `default` = ImageDecodingOptions()
    }
#endif
