import MartletCore
import MartletImages

/// The compiled samples of the documentation pages on images. A test compares the two texts.
enum ImageSamples {
    static func inspected(_ session: HTTPSession) async throws -> ImageSize {
        let photo = try await session.get("https://example.org/photo.jpg")
            .decode(using: .imageInfo)
        print(photo.format, photo.displaySize)
        return photo.size
    }

    static func read(_ exchange: HTTPExchange) throws -> ImageInfo {
        let info = try exchange.imageInfo()
        return info
    }
}
