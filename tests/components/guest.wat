;; A hand-made guest of toolhost:toolkit@1.0.0. Parts are inserted at the marks; see guest.rs.
;; Memory: 1024 result, 1280 results of host calls, 2048 to 8191 data of the parts, from 65536 heap.
(module
  ;;IMPORTS
  ;;MEMORY
  (global $top (mut i32) (i32.const 65536))
  (func $ok (param $at i32) (param $length i32) (result i32)
    (i32.store8 (i32.const 1024) (i32.const 0))
    (i32.store (i32.const 1032) (local.get $at))
    (i32.store (i32.const 1036) (local.get $length))
    (i32.const 1024))
  (func $fail (param $kind i32) (param $kind_len i32) (param $message i32) (param $message_len i32) (result i32)
    (i32.store8 (i32.const 1024) (i32.const 1))
    (i32.store (i32.const 1032) (local.get $kind))
    (i32.store (i32.const 1036) (local.get $kind_len))
    (i32.store (i32.const 1040) (local.get $message))
    (i32.store (i32.const 1044) (local.get $message_len))
    (i32.store8 (i32.const 1048) (i32.const 0))
    (i32.store8 (i32.const 1064) (i32.const 0))
    (i32.store8 (i32.const 1068) (i32.const 0))
    (i32.const 1024))
  (func $execute (export "toolhost:toolkit/entry@1.0.0#execute")
    (param $tool i32) (param $tool_len i32) (param $args i32) (param $args_len i32)
    (param i32 i32 i32 i32 i32 i32 i64) (result i32)
    (local $i i32) (local $j i32)
    ;;EXECUTE
  )
  (func (export "cabi_post_toolhost:toolkit/entry@1.0.0#execute") (param i32)
    ;;POST_RETURN
  )
  (func (export "toolhost:toolkit/entry@1.0.0#poll")
    (param $trigger i32) (param $trigger_len i32) (param $config i32) (param $config_len i32)
    (param $cursor i32) (param $cursor_len i32) (param i32 i32 i32 i32 i32 i32 i64) (result i32)
    (local $i i32) (local $j i32)
    ;;POLL
  )
  (func (export "toolhost:toolkit/entry@1.0.0#receive") (param $request i32) (result i32)
    (local $events i32) (local $count i32) (local $i i32) (local $at i32)
    ;;RECEIVE
  )
  (func $realloc (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32)
    (result i32)
    (local $at i32)
    ;;REALLOC
    (local.set $at (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
    (global.set $top (i32.add (local.get $at) (local.get $size)))
    (if (i32.gt_u (global.get $top) (i32.shl (memory.size) (i32.const 16)))
      (then (if (i32.eq (i32.const -1)
          (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1))))
        (then unreachable))))
    (local.get $at))
  ;;ITEMS
)
