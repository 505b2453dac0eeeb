#if ImageDecoding
    import CMartletPng

    /// Decodes PNG to pixels with libpng's simplified interface, which reports errors and never ends the process.
    enum PNGDecoder {
        static func decode(_ bytes: [UInt8], _ info: ImageInfo, _ options: ImageDecodingOptions) throws(ImageError)
            -> PixelImage
        {
            let byteCount = try PixelImage.byteCount(of: info.size, .png, options)
            var image = unsafe png_image()
            unsafe martlet_png_prepare(&image)
            defer { unsafe png_image_free(&image) }
            var decodingError: ImageError?
            // The library stores the address between the calls.
            let pixels = unsafe bytes.withUnsafeBytes { input in
                do throws(ImageError) {
                    guard unsafe png_image_begin_read_from_memory(&image, input.baseAddress, input.count) != 0 else {
                        throw unsafe failure(image)
                    }
                    // The written size must equal the allocated size.
                    guard unsafe Int(image.width) == info.size.width, unsafe Int(image.height) == info.size.height,
                        let rowByteCount = Int32(exactly: info.size.width * 4)
                    else { throw ImageError(.malformed, format: .png, "two different sizes") }
                    unsafe martlet_png_ask_for_rgba(&image)
                    return try unsafe readPixels(&image, byteCount, rowByteCount)
                } catch {
                    decodingError = error
                    return []
                }
            }
            if let decodingError { throw decodingError }
            return PixelImage(size: info.size, pixels: pixels, orientation: info.orientation)
        }

        private static func readPixels(_ image: inout png_image, _ byteCount: Int, _ rowByteCount: Int32)
            throws(ImageError) -> [UInt8]
        {
            var isRead: Int32 = 0
            let pixels = unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { output, count in
                isRead = unsafe png_image_finish_read(&image, nil, output.baseAddress, rowByteCount, nil)
                count = isRead != 0 ? byteCount : 0
            }
            guard isRead != 0 else { throw unsafe failure(image) }
            return pixels
        }

        private static func failure(_ image: png_image) -> ImageError {
            var image = unsafe image
            let message = unsafe String(cString: martlet_png_message(&image))
            if message.contains("memory") { return ImageError(.outOfMemory, format: .png, message) }
            let isCut = message.contains("EOF") || message.contains("beyond end") || message.contains("Not enough")
            return ImageError(isCut ? .truncated : .malformed, format: .png, message)
        }
    }
#endif
