import MartletImages

extension FuzzEntry {
    /// Image files.
    ///
    /// Control 0: bit 0 sets small limits. The following controls are the sizes of pieces.
    ///
    /// The information and the error do not depend on how the bytes arrive. An image has pixels within the limits, and
    /// an error's offset is in the file.
    /// the limits allow; an error points into the file.
    static let imageInfo = FuzzEntry("image-info") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let limits =
            input.isSet(0, at: 0)
            ? ImageLimits(pixelCount: 10_000, side: 1000, headByteCount: 64) : ImageLimits.default
        let arrivals = input.arrivals(from: 1)
        let whole = ImageReading(input.payload, arrivals[0], limits)
        for other in arrivals.dropFirst() {
            let pieces = ImageReading(input.payload, other, limits)
            try require(pieces == whole, "\(pieces) when \(other), and \(whole) at once")
        }
        switch whole.result {
        case .success(let info):
            try require(info.size.width > 0 && info.size.height > 0, "\(info) has no pixels")
            try require(
                info.size.pixelCount <= limits.pixelCount
                    && max(info.size.width, info.size.height) <= limits.side,
                "\(info) is beyond the limits")
            try require(info.frameCount.map { $0 > 0 || info.format == .webp } != false, "\(info)")
        case .failure(let error):
            try require((0...input.payload.count).contains(error.byteOffset ?? -1), "\(error)")
        }
    }
}

/// The result of the reader for an input.
private struct ImageReading: Equatable {
    let result: Result<ImageInfo, ImageError>

    init(_ bytes: [UInt8], _ arrivals: Arrivals, _ limits: ImageLimits) {
        var reader = ImageInfoReader(limits: limits)
        var fed = 0
        do throws(ImageError) {
            for end in arrivals {
                try reader.feed(bytes[fed..<end])
                fed = end
            }
            result = .success(try reader.finish())
        } catch {
            result = .failure(error)
        }
    }
}
