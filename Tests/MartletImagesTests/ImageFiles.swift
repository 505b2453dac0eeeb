import MartletImages

/// Small image files that are assembled byte by byte.
enum ImageFiles {
    static func big(_ value: Int, _ width: Int) -> [UInt8] {
        (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    static func little(_ value: Int, _ width: Int) -> [UInt8] { big(value, width).reversed() }

    // MARK: - PNG

    static let pngSignature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    static func chunk(_ type: String, _ data: [UInt8] = []) -> [UInt8] {
        let covered = Array(type.utf8) + data
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in covered {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0xEDB8_8320 }
        }
        return big(data.count, 4) + covered + big(Int(~crc), 4)
    }

    static func header(_ width: Int, _ height: Int, depth: UInt8 = 8, colour: UInt8 = 6) -> [UInt8] {
        var data = big(width, 4) + big(height, 4)
        data += [depth, colour, 0, 0, 0]
        return chunk("IHDR", data)
    }

    /// Returns an uncompressed PNG of four-byte pixels, with extra chunks before its data.
    static func png(
        _ width: Int, _ height: Int, pixels: [UInt8]? = nil, before: [UInt8] = [], behind: [UInt8] = []
    ) -> [UInt8] {
        let pixels = pixels ?? [UInt8](repeating: 0x80, count: width * height * 4)
        var rows: [UInt8] = []
        for row in 0..<height { rows += [0] + pixels[(row * width * 4)..<((row + 1) * width * 4)] }
        var (low, high) = (1, 0)
        for byte in rows {
            low = (low + Int(byte)) % 65521
            high = (high + low) % 65521
        }
        var stored: [UInt8] = [0x78, 0x01, 0x01]
        stored += little(rows.count, 2)
        stored += little(~rows.count & 0xFFFF, 2)
        stored += rows
        let data = chunk("IDAT", stored + big(high << 16 | low, 4))
        var file = pngSignature + header(width, height)
        file += before + data
        file += behind + chunk("IEND")
        return file
    }

    // MARK: - Exif

    static func exif(_ orientation: Int, isBig: Bool, type: Int = 3, entries: Int = 2) -> [UInt8] {
        func number(_ value: Int, _ width: Int) -> [UInt8] {
            isBig ? big(value, width) : little(value, width)
        }
        var start = Array((isBig ? "MM" : "II").utf8)
        start += number(42, 2) + number(8, 4)
        start += number(entries, 2)
        var other = number(0x0100, 2) + number(4, 2)
        other += number(1, 4) + number(640, 4)
        let value = number(orientation, type == 3 ? 2 : 4)
        var tag = number(0x0112, 2) + number(type, 2)
        tag += number(1, 4) + value
        let rest = [UInt8](repeating: 0, count: 8 - value.count)
        return start + other + tag + rest
    }

    // MARK: - JPEG

    static func segment(_ marker: UInt8, _ data: [UInt8]) -> [UInt8] {
        [0xFF, marker] + big(data.count + 2, 2) + data
    }

    static func frame(_ width: Int, _ height: Int, marker: UInt8 = 0xC0, components: Int = 3) -> [UInt8] {
        let parts = (0..<components).flatMap { place -> [UInt8] in [UInt8(place + 1), 0x11, 0] }
        var data: [UInt8] = [8]
        data += big(height, 2)
        data += big(width, 2)
        data += [UInt8(components)]
        return segment(marker, data + parts)
    }

    /// Returns the header of a JPEG up to its first scan.
    static func jpeg(_ width: Int, _ height: Int, marker: UInt8 = 0xC0, before: [UInt8] = []) -> [UInt8] {
        var file: [UInt8] = [0xFF, 0xD8]
        file += before
        file += frame(width, height, marker: marker)
        file += segment(0xDA, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0])
        file += [0x12, 0xFF, 0x00, 0x34, 0xFF, 0xD9]
        return file
    }

    static func exifSegment(_ tiff: [UInt8]) -> [UInt8] { segment(0xE1, Array("Exif\0\0".utf8) + tiff) }

    // MARK: - GIF

    static func gif(_ width: Int, _ height: Int, frames: Int = 1, version: String = "89a") -> [UInt8] {
        var screen = Array("GIF\(version)".utf8)
        screen += little(width, 2) + little(height, 2)
        screen += [0x80, 0, 0]
        let table: [UInt8] = [0, 0, 0, 255, 255, 255]
        var loop: [UInt8] = [0x21, 0xFF, 11]
        loop += Array("NETSCAPE2.0".utf8)
        loop += [3, 1, 0, 0, 0]
        if frames < 2 { loop = [] }
        let control: [UInt8] = [0x21, 0xF9, 4, 0, 10, 0, 0, 0]
        var image: [UInt8] = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0x80]
        image += table
        image += [2, 2, 0x44, 0x01, 0]
        var file = screen + table
        file += loop
        for _ in 0..<frames { file += control + image }
        return file + [0x3B]
    }

    // MARK: - WebP

    static func riff(_ chunks: [[UInt8]]) -> [UInt8] {
        let body = Array("WEBP".utf8) + chunks.flatMap { $0 }
        return Array("RIFF".utf8) + little(body.count, 4) + body
    }

    static func webpChunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        var chunk = Array(type.utf8) + little(data.count, 4)
        chunk += data
        if data.count % 2 != 0 { chunk.append(0) }
        return chunk
    }

    static func lossy(_ width: Int, _ height: Int) -> [UInt8] {
        // The two upper bits of each side are a scale.
        let sides = little(width | 0x4000, 2) + little(height | 0x8000, 2)
        var data: [UInt8] = [0x10, 0, 0, 0x9D, 0x01, 0x2A]
        data += sides
        data += [1, 2, 3]
        return webpChunk("VP8 ", data)
    }

    static func lossless(_ width: Int, _ height: Int) -> [UInt8] {
        let bits = (width - 1) | (height - 1) << 14 | 1 << 28
        var data: [UInt8] = [0x2F]
        data += little(bits, 4)
        data += [7, 8]
        return webpChunk("VP8L", data)
    }

    static func extended(_ width: Int, _ height: Int, flags: UInt8) -> [UInt8] {
        var data: [UInt8] = [flags, 0, 0, 0]
        data += little(width - 1, 3)
        data += little(height - 1, 3)
        return webpChunk("VP8X", data)
    }
}
