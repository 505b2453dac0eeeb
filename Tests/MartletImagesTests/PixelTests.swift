#if ImageDecoding
    import MartletCaching
    import MartletCore
    import MartletImages
    import MartletTesting
    import MartletTestSupport
    import Testing

    @Suite("Image pixels")
    struct PixelTests {
        /// Six pixels in rows of three, each in a different color.
        private static let pixels: [UInt8] = [
            1, 2, 3, 255, 4, 5, 6, 128, 7, 8, 9, 255,
            10, 11, 12, 255, 13, 14, 15, 255, 16, 17, 18, 255,
        ]

        /// Returns the red values of an image, row by row.
        private static func reds(_ image: PixelImage) -> [[UInt8]] {
            (0..<image.size.height).map { y in (0..<image.size.width).compactMap { image[$0, y]?.first } }
        }

        private static func turned(_ orientation: Int) -> [UInt8] {
            let exif = ImageFiles.chunk("eXIf", ImageFiles.exif(orientation, isBig: true))
            return ImageFiles.png(3, 2, pixels: pixels, before: exif)
        }

        private static func isClose(_ pixel: ArraySlice<UInt8>?, _ expected: [Int]) -> Bool {
            guard let pixel else { return false }
            return zip(pixel, expected).allSatisfy { abs(Int($0) - $1) <= 12 }
        }

        private static func decoded<Decoder: ResponseDecoder>(
            _ exchange: HTTPExchange, using decoder: Decoder
        ) throws -> Decoder.Output {
            try decoder.decode(exchange)
        }

        @Test("A response is decoded into the pixels of its image")
        func response() async throws {
            let bytes = ImageFiles.png(3, 2, pixels: Self.pixels)
            try await TestOrigin.withOrigin { _ in
                .bytes(bytes, contentType: "image/png")
            } run: { origin in
                let session = HTTPSession(configuration: .ephemeral.patient(total: .seconds(600)))
                let exchange = try await session.get(origin.url())
                #expect(try exchange.image().pixels == Self.pixels)
                #expect(try Self.decoded(exchange, using: .image).pixels == Self.pixels)
                #expect(ImageResponseDecoder().acceptableContentTypes.contains("image/png"))
            }
        }

        @Test("A decoded cache returns the pixels of the file")
        func cache() async throws {
            let bytes = ImageFiles.png(3, 2, pixels: Self.pixels)
            try await TestOrigin.withOrigin { _ in
                .bytes(bytes, contentType: "image/png")
            } run: { origin in
                var configuration = SessionConfiguration.ephemeral.patient(total: .seconds(600))
                configuration.cache = .memoryOnly()
                let images = try DecodedCache(
                    imagesOf: HTTPSession(configuration: configuration), memoryPressure: nil)
                let image = try await images.value(for: origin.url())
                #expect(image.pixels == Self.pixels)
                #expect(images.limit == .mebibytes(64))
            }
        }

        @Test("An image is rotated upright in each of the eight orientations, or left unchanged")
        func orientations() throws {
            let expected: [[[UInt8]]] = [
                [[1, 4, 7], [10, 13, 16]], [[7, 4, 1], [16, 13, 10]], [[16, 13, 10], [7, 4, 1]],
                [[10, 13, 16], [1, 4, 7]], [[1, 10], [4, 13], [7, 16]], [[10, 1], [13, 4], [16, 7]],
                [[16, 7], [13, 4], [10, 1]], [[7, 16], [4, 13], [1, 10]],
            ]
            for orientation in 1...8 {
                let image = try PixelImage(Self.turned(orientation))
                #expect(Self.reds(image) == expected[orientation - 1], "orientation \(orientation)")
                #expect(image.orientation == .up)
                let raw = try PixelImage(
                    Self.turned(orientation), options: ImageDecodingOptions(appliesOrientation: false))
                #expect(Self.reds(raw) == expected[0])
                #expect(raw.orientation.rawValue == UInt8(orientation))
            }
        }

        @Test("Alpha is retained, and colors are not premultiplied")
        func alpha() throws {
            let image = try PixelImage(ImageFiles.png(3, 2, pixels: Self.pixels))
            #expect(image[1, 0] == [4, 5, 6, 128])
            #expect(image[3, 0] == nil)
            #expect(image[0, -1] == nil)
        }

        @Test("Baseline and progressive JPEGs are decoded")
        func jpeg() throws {
            for bytes in [JPEGFiles.halves, JPEGFiles.progressive] {
                let image = try PixelImage(bytes)
                #expect(image.size == ImageSize(width: 16, height: 8))
                #expect(image.pixels.count == 16 * 8 * 4)
                #expect(Self.isClose(image[1, 1], [255, 0, 0, 255]))
                #expect(Self.isClose(image[14, 6], [0, 0, 255, 255]))
            }
        }

        @Test("A CMYK JPEG becomes red, green and blue")
        func inks() throws {
            let image = try PixelImage(JPEGFiles.inks)
            #expect(Self.isClose(image[4, 4], [255, 0, 0, 255]), "\(image[4, 4] ?? [])")
        }

        @Test("A thumbnail is decoded with the smallest factor that is large enough")
        func thumbnails() throws {
            for (side, width, height) in [
                (1, 2, 1), (2, 2, 1), (3, 4, 2), (8, 8, 4), (15, 16, 8), (99, 16, 8),
            ] {
                let options = ImageDecodingOptions(thumbnailMaxPixelSize: side)
                let image = try PixelImage(JPEGFiles.halves, options: options)
                #expect(image.size == ImageSize(width: width, height: height), "for \(side)")
                #expect(Self.isClose(image[0, 0], [255, 0, 0, 255]))
                #expect(Self.isClose(image[width - 1, 0], [0, 0, 255, 255]))
            }
        }

        @Test("An image with too many pixels is rejected before an allocation")
        func bombs() {
            let options = ImageDecodingOptions(pixelCountLimit: 5)
            for bytes in [ImageFiles.png(3, 2), JPEGFiles.halves] {
                let error = #expect(throws: ImageError.self) { try PixelImage(bytes, options: options) }
                #expect(error?.code == .limitExceeded)
            }
            var huge = ImageFiles.pngSignature + ImageFiles.header(0x7FFF_FFFF, 0x7FFF_FFFF)
            huge += ImageFiles.chunk("IDAT")
            huge += ImageFiles.chunk("IEND")
            for limit in [50_000_000, Int.max] {
                let error = #expect(throws: ImageError.self) {
                    try PixelImage(huge, options: ImageDecodingOptions(pixelCountLimit: limit))
                }
                #expect(error?.code == .limitExceeded)
            }
        }

        @Test("Truncated files are errors and never trap")
        func truncation() {
            let png = ImageFiles.png(3, 2)
            // A file that ends after the last byte of the pixels has all of them.
            for count in 0..<png.count - 24 {
                #expect(throws: ImageError.self, "PNG of \(count)") { try PixelImage(Array(png[..<count])) }
            }
            for count in 0..<JPEGFiles.halves.count - 8 {
                #expect(throws: ImageError.self, "JPEG of \(count)") {
                    try PixelImage(Array(JPEGFiles.halves[..<count]))
                }
            }
        }

        @Test("A damaged JPEG is decoded as far as possible, if that is allowed")
        func damage() throws {
            let cut = Array(JPEGFiles.halves.dropLast(12))
            #expect(throws: ImageError.self) { try PixelImage(cut) }
            let image = try PixelImage(cut, options: ImageDecodingOptions(allowsDamagedData: true))
            #expect(image.size == ImageSize(width: 16, height: 8))
        }

        @Test("Changing any byte results in pixels or an error")
        func changes() {
            for file in [ImageFiles.png(3, 2), JPEGFiles.halves] {
                for place in file.indices {
                    for byte in [0, 0xFF, 0x5A] as [UInt8] {
                        var bytes = file
                        bytes[place] = byte
                        do throws(ImageError) {
                            let options = ImageDecodingOptions(pixelCountLimit: 1_000_000)
                            let image = try PixelImage(bytes, options: options)
                            #expect(image.pixels.count == image.size.pixelCount * 4)
                        } catch {
                            #expect(!error.message.isEmpty)
                        }
                    }
                }
            }
        }

        @Test("Decoding the pixels of a GIF or a WebP is a specific error")
        func unsupported() {
            for bytes in [ImageFiles.gif(1, 1), ImageFiles.riff([ImageFiles.lossy(1, 1)])] {
                let error = #expect(throws: ImageError.self) { try PixelImage(bytes) }
                #expect(error?.code == .unsupported)
            }
        }
    }
#endif
