/// Reads the markers of a JPEG up to its pixels (ITU-T T.81 Annex B).
struct JPEGReader: ImageFileReader {
    private var hasFrame = false
    /// The width of a frame whose height is in a DNL segment after the first scan.
    private var width: Int?
    /// Whether entropy-coded data comes next, which a DNL segment follows.
    private var isScanning = false

    mutating func step(_ file: inout ImageFile) throws(ImageError) -> ImageStep {
        let place = file.offset
        if isScanning {
            guard file.skipToMarker() else { return .needsBytes }
            // The limit is checked at the marker, whether or not the data before it arrived in the same piece.
            guard file.offset == place else { return .next }
        }
        guard let first = file.byte() else { return .needsBytes }
        guard first == 0xFF else { throw file.error("a marker is missing") }
        guard let marker = file.byte(1) else { return .needsBytes }
        switch marker {
        // A fill byte (§B.1.1.2).
        case 0xFF: file.skip(1)
        case 0xD0...0xD7, isScanning ? 0x00 : 0x01: file.skip(2)
        case _ where isScanning: return try readHeight(marker, &file)
        default: return try readSegment(marker, &file)
        }
        return .next
    }

    private mutating func readSegment(_ marker: UInt8, _ file: inout ImageFile) throws(ImageError) -> ImageStep {
        switch marker {
        case 0x00, 0xD8: throw file.error("the marker \(marker) within the head")
        case 0xD9: throw file.error("the end of the image before its pixels")
        default: break
        }
        guard let head = file.peek(4) else { return .needsBytes }
        let length = head.big(2, 2)
        guard length >= 2 else { throw file.error("a segment of \(length) bytes", at: file.offset + 2) }
        switch marker {
        case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
            guard let segment = file.peek(length + 2) else { return .needsBytes }
            try readFrame(segment, &file)
        case 0xE1 where file.orientation == nil:
            guard let segment = file.peek(length + 2) else { return .needsBytes }
            let data = segment.dropFirst(4)
            if data.starts(with: "Exif\0".utf8) { file.orientation = ImageOrientation(exif: data) }
        case 0xDA:
            guard hasFrame else { throw file.error("a scan before its frame") }
            guard width != nil else {
                file.hasHead = true
                return .done
            }
            isScanning = true
        default: break
        }
        file.skip(length + 2)
        return .next
    }

    /// Reads the head of a frame (§B.2.2).
    private mutating func readFrame(_ segment: ArraySlice<UInt8>, _ file: inout ImageFile) throws(ImageError) {
        // The first frame of a hierarchical image is not the largest, so the size of the image is not known here.
        guard !hasFrame else { throw file.error("a second frame") }
        let length = segment.count - 2
        guard length >= 8, length == 8 + 3 * segment.big(9, 1), segment.big(9, 1) > 0 else {
            throw file.error("the head of a frame has \(length) bytes", at: file.offset + 2)
        }
        let size = ImageSize(width: segment.big(7, 2), height: segment.big(5, 2))
        guard size.width > 0 else { throw file.error("a frame without width", at: file.offset + 7) }
        hasFrame = true
        (file.isAnimated, file.frameCount) = (false, 1)
        if size.height == 0 { width = size.width } else { file.size = size }
    }

    /// Reads the segment with the number of lines (§B.2.5).
    private func readHeight(_ marker: UInt8, _ file: inout ImageFile) throws(ImageError) -> ImageStep {
        guard marker == 0xDC else { throw file.error("the height of the frame is missing") }
        guard let segment = file.peek(6) else { return .needsBytes }
        let height = segment.big(4, 2)
        guard segment.big(2, 2) == 4, height > 0, let width else {
            throw file.error("the number of lines is malformed")
        }
        file.size = ImageSize(width: width, height: height)
        file.hasHead = true
        return .done
    }
}
