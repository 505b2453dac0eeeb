import MartletCore

/// Reads the chunks of a PNG (W3C Portable Network Graphics, third edition, §5 and §11).
struct PNGReader: ImageFileReader {
    /// Whether the next chunk is the first one, which must be IHDR.
    private var isFirst = true
    private var hasData = false

    mutating func step(_ file: inout ImageFile) throws(ImageError) -> ImageStep {
        guard let head = file.peek(8) else { return .needsBytes }
        let place = file.offset
        let length = head.big(0, 4)
        guard length <= Int(Int32.max) else { throw file.error("a chunk of \(length) bytes") }
        guard head.dropFirst(4).allSatisfy({ (0x41...0x5A).contains($0 & 0xDF) && $0 < 0x80 }) else {
            throw file.error("a chunk's type is not four letters", at: place + 4)
        }
        let name = String(decoding: head.dropFirst(4), as: UTF8.self)
        guard !isFirst || name == "IHDR" && length == 13 else {
            throw file.error("the first chunk is not an IHDR of 13 bytes")
        }
        switch name {
        case "IHDR", "acTL", "eXIf":
            guard length <= ImageFile.chunkByteLimit else { break }
            guard let chunk = file.peek(length + 12) else { return .needsBytes }
            let covered = chunk.dropFirst(4).dropLast(4)
            guard RecordChecksum(covered.span).value == UInt32(chunk.big(length + 8, 4)) else {
                throw file.error("the checksum of \(name) is wrong")
            }
            try read(name, covered.dropFirst(4), at: place + 8, &file)
        case "IDAT":
            if file.isAnimated == nil { (file.isAnimated, file.frameCount) = (false, 1) }
            hasData = true
            file.hasHead = true
        case "IEND":
            guard hasData else { throw file.error("there is no IDAT") }
            return .done
        default: break
        }
        isFirst = false
        file.skip(length + 12)
        return .next
    }

    private func read(_ name: String, _ data: ArraySlice<UInt8>, at place: Int, _ file: inout ImageFile)
        throws(ImageError)
    {
        switch name {
        case "IHDR":
            guard isFirst else { throw file.error("a second IHDR") }
            try readSize(data, at: place, &file)
        case "acTL":
            guard data.count == 8 else { throw file.error("an acTL of \(data.count) bytes", at: place) }
            // After the pixels it has no effect (§11.3.6.1).
            guard !hasData, file.isAnimated == nil else { return }
            let count = data.big(0, 4)
            guard (1...Int(Int32.max)).contains(count) else {
                throw file.error("an animation of \(count) frames", at: place)
            }
            (file.isAnimated, file.frameCount) = (count > 1, count)
        default: file.orientation = file.orientation ?? ImageOrientation(exif: data)
        }
    }

    private func readSize(_ data: ArraySlice<UInt8>, at place: Int, _ file: inout ImageFile) throws(ImageError) {
        let size = ImageSize(width: data.big(0, 4), height: data.big(4, 4))
        guard (1...Int(Int32.max)).contains(size.width), (1...Int(Int32.max)).contains(size.height) else {
            throw file.error("an image of \(size) pixels", at: place)
        }
        let (depth, color) = (data.big(8, 1), data.big(9, 1))
        let depths: [Int] =
            switch color {
            case 0: [1, 2, 4, 8, 16]
            case 3: [1, 2, 4, 8]
            case 2, 4, 6: [8, 16]
            default: []
            }
        guard depths.contains(depth) else {
            throw file.error("\(depth) bits of the color type \(color)", at: place + 8)
        }
        guard data.big(10, 2) == 0, data.big(12, 1) <= 1 else {
            throw file.error("an unknown compression, filter or interlacing", at: place + 10)
        }
        file.size = size
    }
}
