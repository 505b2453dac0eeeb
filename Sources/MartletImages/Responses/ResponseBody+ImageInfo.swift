public import MartletClient

extension ResponseBody {
    /// Reads the body until what stands before the pixels is known: mostly the first few KiB. What was read is gone from the
    /// body; whoever wants that too feeds an ``ImageInfoReader`` piece by piece.
    ///
    /// - Parameter limits: What the image may have at most.
    /// - Throws: An ``ImageError``; an `HTTPError`, as the body does; `CancellationError`.
    public func imageInfo(limits: ImageLimits = .default) async throws -> ImageInfo {
        var reader = ImageInfoReader(limits: limits)
        var pieces = makeAsyncIterator()
        while !reader.hasHead, let piece = try await pieces.next() {
            try reader.feed(piece)
        }
        return try reader.finish()
    }
}
