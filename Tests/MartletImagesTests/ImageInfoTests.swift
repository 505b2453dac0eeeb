import MartletImages
import Testing

@Suite("Image headers")
struct ImageInfoTests {
    /// A file and its expected image information.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        let info: ImageInfo

        init(
            _ name: String, _ bytes: [UInt8], _ format: ImageFormat, _ width: Int, _ height: Int,
            _ orientation: ImageOrientation = .up, frames: Int? = 1, animated: Bool = false
        ) {
            testDescription = name
            self.bytes = bytes
            info = ImageInfo(
                format: format, size: ImageSize(width: width, height: height), orientation: orientation,
                frameCount: frames, isAnimated: animated)
        }
    }

    private static var linesBehindScan: [UInt8] {
        var file = Array(ImageFiles.jpeg(9, 0).dropLast(2))
        file += [0xFF, 0xD0, 0xFF, 0xFF]
        file += ImageFiles.segment(0xDC, [0, 77])
        return file
    }

    private static var filler: [UInt8] {
        var bytes: [UInt8] = [0xFF, 0xFF, 0xFF]
        bytes += ImageFiles.segment(0xFE, [0xFF, 0xD8, 0xFF, 0xC0])
        bytes += ImageFiles.segment(0xE2, [UInt8](repeating: 0xFF, count: 65_533))
        return bytes
    }

    private static let frameMarkers: [UInt8] = [
        0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF,
    ]

    static let cases: [Case] =
        [
            Case("PNG", ImageFiles.png(3, 2), .png, 3, 2),
            Case(
                "PNG with Exif before its pixels",
                ImageFiles.png(3, 2, before: ImageFiles.chunk("eXIf", ImageFiles.exif(6, isBig: true))), .png,
                3, 2,
                .right),
            Case(
                "PNG with Exif behind its pixels",
                ImageFiles.png(3, 2, behind: ImageFiles.chunk("eXIf", ImageFiles.exif(3, isBig: false))),
                .png, 3,
                2, .down),
            Case(
                "animated PNG",
                ImageFiles.png(3, 2, before: ImageFiles.chunk("acTL", [0, 0, 0, 7, 0, 0, 0, 0])), .png, 3, 2,
                frames: 7, animated: true),
            Case(
                "PNG with long text",
                ImageFiles.png(
                    3, 2, before: ImageFiles.chunk("tEXt", [UInt8](repeating: 0x41, count: 100_000))), .png,
                3, 2),
            Case("JPEG with Exif, big-endian", exifJPEG(8, isBig: true), .jpeg, 640, 480, .left),
            Case("JPEG with Exif, little-endian", exifJPEG(5, isBig: false), .jpeg, 640, 480, .leftMirrored),
            Case(
                "JPEG with a long orientation",
                ImageFiles.jpeg(
                    640, 480, before: ImageFiles.exifSegment(ImageFiles.exif(2, isBig: false, type: 4))),
                .jpeg,
                640, 480, .upMirrored),
            Case(
                "JPEG with fill bytes, comments and ICC profiles",
                ImageFiles.jpeg(
                    9, 8,
                    before: filler), .jpeg, 9, 8),
            Case(
                "JPEG whose height stands behind its scan",
                linesBehindScan,
                .jpeg, 9, 77),
            Case("GIF 87a", ImageFiles.gif(10, 20, version: "87a"), .gif, 10, 20),
            Case("GIF 89a", ImageFiles.gif(65535, 1), .gif, 65535, 1),
            Case("animated GIF", ImageFiles.gif(4, 5, frames: 3), .gif, 4, 5, frames: 3, animated: true),
            Case("lossy WebP", ImageFiles.riff([ImageFiles.lossy(400, 301)]), .webp, 400, 301),
            Case("lossless WebP", ImageFiles.riff([ImageFiles.lossless(16384, 2)]), .webp, 16384, 2),
            Case(
                "extended WebP",
                ImageFiles.riff([ImageFiles.extended(500, 300, flags: 0x10), ImageFiles.lossy(500, 300)]),
                .webp,
                500, 300),
            Case(
                "extended WebP with Exif",
                ImageFiles.riff([
                    ImageFiles.extended(500, 300, flags: 0x08), ImageFiles.lossy(500, 300),
                    ImageFiles.webpChunk("EXIF", Array("Exif\0\0".utf8) + ImageFiles.exif(7, isBig: true)),
                ]), .webp, 500, 300, .rightMirrored),
            Case(
                "animated WebP",
                ImageFiles.riff([
                    ImageFiles.extended(50, 30, flags: 0x02),
                    ImageFiles.webpChunk("ANIM", [0, 0, 0, 0, 0, 0]),
                    ImageFiles.webpChunk("ANMF", [UInt8](repeating: 0, count: 25)),
                    ImageFiles.webpChunk("ANMF", [UInt8](repeating: 0, count: 24)),
                ]), .webp, 50, 30, frames: 2, animated: true),
        ]
        + frameMarkers.map { marker -> Case in
            Case("JPEG, frame \(marker)", ImageFiles.jpeg(65535, 1, marker: marker), .jpeg, 65535, 1)
        }

    private static func exifJPEG(_ orientation: Int, isBig: Bool) -> [UInt8] {
        ImageFiles.jpeg(
            640, 480, before: ImageFiles.exifSegment(ImageFiles.exif(orientation, isBig: isBig)))
    }

    @Test("An image's format, size, orientation and frames are read from its head", arguments: cases)
    func info(_ row: Case) throws {
        #expect(try ImageInfo(row.bytes) == row.info)
    }

    @Test("The result is the same for a file in pieces of any size", arguments: cases)
    func pieces(_ row: Case) throws {
        for size in [1, 2, 3, 7, 1000] where row.bytes.count < 1000 || size > 3 {
            var reader = ImageInfoReader()
            for start in stride(from: 0, to: row.bytes.count, by: size) {
                try reader.feed(row.bytes[start..<min(row.bytes.count, start + size)])
            }
            #expect(try reader.finish() == row.info, "in pieces of \(size)")
        }
    }

    @Test("A truncated file is an error before its size is known, and reports its size after", arguments: cases)
    func truncation(_ row: Case) {
        for count in 0..<min(300, row.bytes.count) {
            do throws(ImageError) {
                let info = try ImageInfo(row.bytes[..<count])
                #expect(info.size == row.info.size)
                #expect(info.format == row.info.format)
            } catch {
                #expect(error.code == .truncated, "\(error) after \(count) bytes")
                #expect(error.byteOffset == count)
            }
        }
    }

    @Test("The size is known from the first bytes, long before the file ends")
    func early() throws {
        for (bytes, count) in [
            (ImageFiles.png(3, 2), 33), (ImageFiles.gif(4, 5), 13),
            (ImageFiles.riff([ImageFiles.lossy(4, 5)]), 30),
            (ImageFiles.riff([ImageFiles.extended(4, 5, flags: 2)]), 30), (ImageFiles.jpeg(4, 5), 21),
        ] {
            var reader = ImageInfoReader()
            try reader.feed(bytes[..<(count - 1)])
            #expect(reader.info == nil)
            try reader.feed(bytes[(count - 1)..<count])
            #expect(try reader.info?.size == ImageInfo(bytes).size)
        }
    }

    @Test("All eight orientations are recognized, and no other number is")
    func orientations() throws {
        for number in 0...9 {
            for isBig in [true, false] {
                let info = try ImageInfo(Self.exifJPEG(number, isBig: isBig))
                #expect(info.orientation == ImageOrientation(rawValue: UInt8(number)) ?? .up)
                #expect(info.displaySize == (5...8 ~= number ? info.size.transposed : info.size))
            }
        }
    }

    @Test("Invalid Exif data is ignored")
    func brokenExif() throws {
        let sound = ImageFiles.exif(6, isBig: true)
        for count in 0..<sound.count - 6 {
            let bytes = ImageFiles.jpeg(4, 5, before: ImageFiles.exifSegment(Array(sound[..<count])))
            #expect(try ImageInfo(bytes).orientation == .up)
        }
        for place in 0..<8 {
            var broken = sound
            broken[place] = 0xFF
            let bytes = ImageFiles.jpeg(4, 5, before: ImageFiles.exifSegment(broken))
            #expect(try ImageInfo(bytes).orientation == .up)
        }
        let endless = ImageFiles.exif(6, isBig: false, entries: 65535)
        #expect(
            try ImageInfo(ImageFiles.jpeg(4, 5, before: ImageFiles.exifSegment(endless))).orientation
                == .right)
    }

    @Test("A complete reader ignores further bytes")
    func complete() throws {
        var reader = ImageInfoReader()
        try reader.feed(ImageFiles.gif(4, 5) + [1, 2, 3])
        #expect(reader.isComplete)
        #expect(reader.hasHead)
        try reader.feed([0xFF])
        #expect(try reader.finish().frameCount == 1)
    }
}
