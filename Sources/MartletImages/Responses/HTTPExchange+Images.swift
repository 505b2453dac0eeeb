public import MartletClient

extension HTTPExchange {
    /// What the body says about its image, provided that the status is 2xx: format, size, orientation, frames. The format is
    /// told by the bytes; `Content-Type` is not looked at.
    ///
    /// - Parameter limits: What the image may have at most.
    /// - Throws: An `HTTPError` with the code `.unacceptableStatus` that carries this exchange; an ``ImageError``.
    public func imageInfo(limits: ImageLimits = .default) throws -> ImageInfo {
        try ImageInfo(validated().body, limits: limits)
    }
}
