#if ImageDecoding
    import CMartletTurboJPEG

    /// Decodes JPEG to pixels with TurboJPEG, which reports errors and never ends the process.
    enum JPEGDecoder {
        static func decode(_ bytes: [UInt8], _ info: ImageInfo, _ options: ImageDecodingOptions) throws(ImageError)
            -> PixelImage
        {
            guard let handle = unsafe tjInitDecompress() else {
                throw ImageError(.outOfMemory, format: .jpeg, "cannot create the decoder")
            }
            defer { unsafe _ = tjDestroy(handle) }
            var (width, height, sampling, colors): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
            let headStatus = unsafe bytes.withUnsafeBufferPointer { input in
                unsafe tjDecompressHeader3(
                    handle, input.baseAddress, UInt(input.count), &width, &height, &sampling, &colors)
            }
            guard unsafe headStatus == 0 || isWarning(handle) else { throw unsafe failure(handle) }
            let stored = ImageSize(width: Int(width), height: Int(height))
            guard stored == info.size else { throw ImageError(.malformed, format: .jpeg, "two different sizes") }
            let size = scaled(stored, options.thumbnailMaxPixelSize)
            let byteCount = try PixelImage.byteCount(of: size, .jpeg, options)
            let isInk =
                colors == Int32(bitPattern: TJCS_CMYK.rawValue) || colors == Int32(bitPattern: TJCS_YCCK.rawValue)
            // A progressive file can have an unlimited number of scans, and each one covers the whole image.
            let flags = TJFLAG_LIMITSCANS | (options.allowsDamagedData ? 0 : TJFLAG_STOPONWARNING)
            var status: Int32 = -1
            var pixels = unsafe bytes.withUnsafeBufferPointer { input in
                unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { output, count in
                    unsafe output.initialize(repeating: 0)
                    count = byteCount
                    status = unsafe tjDecompress2(
                        handle, input.baseAddress, UInt(input.count), output.baseAddress, Int32(size.width), 0,
                        Int32(size.height), isInk ? TJPF_CMYK.rawValue : TJPF_RGBA.rawValue, flags)
                }
            }
            guard unsafe status == 0 || options.allowsDamagedData && isWarning(handle) else {
                throw unsafe failure(handle)
            }
            if isInk { mixInk(&pixels) }
            return PixelImage(size: size, pixels: pixels, orientation: info.orientation)
        }

        /// Scales a size by the smallest factor with which the longer side is at least the wanted size.
        private static func scaled(_ size: ImageSize, _ thumbnailMaxPixelSize: Int?) -> ImageSize {
            guard let thumbnailMaxPixelSize else { return size }
            for eighths in 1..<8 {
                // TurboJPEG rounds up.
                let side = ImageSize(width: (size.width * eighths + 7) / 8, height: (size.height * eighths + 7) / 8)
                if max(side.width, side.height) >= thumbnailMaxPixelSize { return side }
            }
            return size
        }

        /// Converts cyan, magenta, yellow and black, inverted as in Adobe's files, to red, green and blue.
        private static func mixInk(_ pixels: inout [UInt8]) {
            for place in stride(from: 0, to: pixels.count - 3, by: 4) {
                let black = Int(pixels[place + 3])
                for channel in 0..<3 {
                    pixels[place + channel] = UInt8((Int(pixels[place + channel]) * black + 127) / 255)
                }
                pixels[place + 3] = 255
            }
        }

        private static func isWarning(_ handle: tjhandle) -> Bool {
            unsafe tjGetErrorCode(handle) == Int32(bitPattern: TJERR_WARNING.rawValue)
        }

        private static func failure(_ handle: tjhandle) -> ImageError {
            let message = unsafe String(cString: tjGetErrorStr2(handle))
            let codes: KeyValuePairs<String, ImageError.Code> = [
                "emory": .outOfMemory, "Premature end": .truncated, "nsupported": .unsupported,
                "not supported": .unsupported, "Cannot": .unsupported,
            ]
            let code = codes.first { message.contains($0.key) }?.value ?? .malformed
            return ImageError(code, format: .jpeg, message)
        }
    }
#endif
