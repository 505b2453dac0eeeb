/// Finds the orientation in Exif data: the tag 0x0112 of the first directory of a TIFF file (Exif 3.0 §4.6).
///
/// Data that makes no sense says nothing: cameras and editors write all sorts, and the picture is none the worse.
enum ExifOrientation {
    private static let prefix = Array("Exif\0\0".utf8)

    /// The orientation in a TIFF file, with or without `Exif` in front; nil when there is none.
    static func orientation(in bytes: ArraySlice<UInt8>) -> ImageOrientation? {
        let file = bytes.starts(with: prefix) ? bytes.dropFirst(6) : bytes
        guard file.count >= 8 else { return nil }
        let isBig: Bool
        switch Array(file.prefix(4)) {
        case [0x4D, 0x4D, 0, 0x2A]: isBig = true
        case [0x49, 0x49, 0x2A, 0]: isBig = false
        default: return nil
        }
        func number(_ place: Int, _ width: Int) -> Int? {
            guard place >= 0, place <= file.count - width else { return nil }
            return isBig ? file.big(place, width) : file.little(place, width)
        }
        guard let directory = number(4, 4), directory >= 8, let count = number(directory, 2) else {
            return nil
        }
        for entry in 0..<count {
            let place = directory + 2 + entry * 12
            guard let tag = number(place, 2), let type = number(place + 2, 2),
                let amount = number(place + 4, 4)
            else { return nil }
            guard tag == 0x0112 else { continue }
            // A SHORT, as it must be, or a LONG, as some have it.
            guard amount == 1, type == 3 || type == 4, let value = number(place + 8, type == 3 ? 2 : 4) else {
                return nil
            }
            return UInt8(exactly: value).flatMap(ImageOrientation.init)
        }
        return nil
    }
}
