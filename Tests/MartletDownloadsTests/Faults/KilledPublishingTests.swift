import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

/// Processes that are killed while a file is published under its name.
@Suite("A process killed while a file is published")
struct KilledPublishingTests {
    /// A point at which the process ends, and the collision policy for the name.
    struct Point: Sendable, CustomTestStringConvertible {
        var name: String
        var collision: DownloadOptions.Collision

        var testDescription: String { "\(name), \(collision)" }

        static let all = ["noted", "named", "copied", "settled"].flatMap { name in
            [DownloadOptions.Collision.fail, .overwrite, .rename].map { Point(name: name, collision: $0) }
        }
    }

    @Test(
        "The next process finds the published file once, and fetches nothing again",
        arguments: Point.all, ["synced", "unsynced"])
    func found(_ point: Point, _ durability: String) async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let directory = scene.directory.path + "/queue"
            let child = try await DownloadsChild.run(
                [
                    "managed", scene.url, scene.path.string, directory, "point=\(point.name)",
                    "collision=\(point.collision.rawValue)", "durability=\(durability)",
                ])
            #expect(child.isKilled, "\(child)")
            let isNamed = point.name != "noted"
            #expect(try scene.directory.names().contains(RangeScene.name) == isNamed)
            let count = scene.ranges.requests.count
            let manager = try await DownloadManager(
                session: scene.session, directory: FilePath(directory))
            let id = try #require(manager.ids.first)
            let download = try #require(manager.download(id))
            let result = try await download.value
            #expect(result.path == scene.path && result.byteCount == Samples.one.byteCount)
            if isNamed {
                #expect(scene.ranges.requests.count == count, "asked again")
                #expect(result.receivedByteCount == 0)
            }
            #expect(try scene.directory.names() == [RangeScene.name, "queue"])
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            await manager.close()
            let next = try await DownloadManager(session: scene.session, directory: FilePath(directory))
            _ = try await next.allFinished
            guard case .finished(let told) = next.download(id)?.state else {
                Issue.record("it is not known as finished")
                return
            }
            #expect(told.path == scene.path)
            await next.close()
        }
    }
}
