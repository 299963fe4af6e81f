(module
  ;;IMPORTS
  (memory (export "memory") 2)
  (global $top (mut i32) (i32.const 65536))
  ;; Buffer for the result of the guest, and buffer for results of the host.
  (global $answer i32 (i32.const 1024))
  (global $room i32 (i32.const 1152))

  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
    (global.set $top (i32.add (local.get $at) (local.get $size)))
    (block $fits
      (br_if $fits (i32.le_u (global.get $top) (i32.shl (memory.size) (i32.const 16))))
      (drop (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get $size) (i32.const 16))))))
    (memory.copy (local.get $at) (local.get $old) (local.get $old_size))
    (local.get $at))

  (func $ok (param $bytes i32) (param $length i32) (result i32)
    (i32.store (global.get $answer) (i32.const 0))
    (i32.store offset=8 (global.get $answer) (local.get $bytes))
    (i32.store offset=12 (global.get $answer) (local.get $length))
    (global.get $answer))

  (func $fail (param $kind i32) (param $kind_len i32) (param $message i32) (param $message_len i32) (result i32)
    (memory.fill (global.get $answer) (i32.const 0) (i32.const 64))
    (i32.store (global.get $answer) (i32.const 1))
    (i32.store offset=8 (global.get $answer) (local.get $kind))
    (i32.store offset=12 (global.get $answer) (local.get $kind_len))
    (i32.store offset=16 (global.get $answer) (local.get $message))
    (i32.store offset=20 (global.get $answer) (local.get $message_len))
    (global.get $answer))

  ;;ITEMS

  (func (export "toolhost:toolkit/entry@1.0.0#execute")
    (param $tool i32) (param $tool_len i32) (param $args i32) (param $args_len i32)
    (param $run i32) (param $run_len i32) (param $user i32) (param $user_len i32)
    (param $fields i32) (param $fields_len i32) (param $left i64) (result i32)
    (local $i i32)
    ;;EXECUTE
  )
  (func (export "toolhost:toolkit/entry@1.0.0#poll")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64) (result i32) unreachable)
  (func (export "toolhost:toolkit/entry@1.0.0#receive") (param $input i32) (result i32)
    ;;RECEIVE
  )
)
